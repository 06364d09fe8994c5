"""Addresses: every written form is found whole, places that identify nobody and everything else stay."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.pii.address import address
from tests.support import recognising


def lines(text: str) -> list[str]:
    return [each for line in text.split("\n") for each in line.split(" | ") if each]


ADDRESSES = lines("""
广东省深圳市南山区科技园南路12号 | 北京市朝阳区建国路88号3号楼502室 | 北京市朝阳区建国路88号院6号楼2单元1801
河南省周口市太康县马厂乡李庄村3组 | 太康县马厂镇李庄村 | 上海浦东张江路555弄3号
上海市徐汇区肇嘉浜路1000号1号楼2603室 | 阳光小区5栋2单元301 | 幸福花园小区5栋2单元301室 | 翠湖花苑12幢1单元602
金地公寓A座1203 | 内蒙古自治区锡林郭勒盟正蓝旗那日图苏木 | 内蒙古自治区呼伦贝尔市鄂温克族自治旗巴彦塔拉乡3组
新疆维吾尔自治区乌鲁木齐市天山区解放南路66号 | 新疆维吾尔自治区喀什地区疏勒县巴合齐乡5村
台北市大安區忠孝東路四段100號5樓 | 臺中市西屯區臺灣大道三段99號 | 新北市板橋區文化路一段188巷5弄3號2樓
高雄市左營區博愛二路777號 | 九龙旺角弥敦道 | 九龙旺角弥敦道700号 | 香港中环皇后大道中99号 | 西影路54号 | 南京东路300号
王家村3组 | 北京市海淀区中关村大街27号 | 四川省成都市武侯区人民南路三段17号 | 北京市朝阳区望京街道
广东省 深圳市 南山区 科技园南路 12号 | 广东省深圳市南山区科技园南路１２号 | 广东省-深圳市-南山区-科技园南路12号
北京市朝阳区建国路八十八号 | 江苏省苏州市昆山市花桥镇绿地大道231号 | 山东省济南市历下区经十路16号
北京市东城区东交民巷甲12号 | 北京市西城区西四北大街东四条胡同7号 | 湖南省长沙市岳麓区麓山南路932号中南大学3栋
广西壮族自治区南宁市青秀区民族大道100号 | 重庆市渝中区解放碑民权路28号 | 河北省石家庄市长安区中山东路265号
黑龙江省哈尔滨市南岗区西大直街92号 | 浙江省杭州市西湖区文三路90号东部软件园5楼
安徽省阜阳市颍州区三合镇王庄村委会张寨自然村 | 周口市太康县李庄村 | 云南省大理白族自治州大理市古城人民路88号
深圳市龙岗区坂田街道五和大道118号华美公寓A座1203 | 吉林省延边朝鲜族自治州延吉市公园路977号
河南省郑州市金水区花园路39号 | 广州市天河区体育西路103号维多利广场A塔 | 浙江省义乌市稠城街道工人北路699号
贵州省毕节市威宁县草海镇 | 西安市雁塔区小寨东路1号 | 成都市锦江区春熙路西段8号附2号
陕西省渭南市临渭区向阳街道办事处杜桥社区 | 西藏自治区拉萨市城关区八一路 | 沈阳市铁西区兴工北街65-3号2-5-1
广东东莞市长安镇乌沙社区江贝村 | 东莞长安镇 | 上海阳光路12号 | 澳门新马路12号 | XX小区5栋2单元301
河南省周口市太康县某乡某村3组 | 哈尔滨道里区中央大街100号
""")

PLACES_ONLY = lines("""
我在北京
去上海看病怎么样
我是广东人，现在在河南省
他在北京市朝阳区出差
江苏省苏州市的医保
家住北京市，想问一下
老家在山东菏泽
住在上海十年了
籍贯湖南
台北市的天气
内蒙古自治区的草原
我来自新疆
""")

NO_ADDRESSES = lines("""
消化道3号病变，尿路感染2次，信号通路5号位点
没有思路，走路3号腿疼，一路5号车
5号染色体长臂缺失，19号元素是钾
1号方每日一剂，2号病已经绝迹
胃镜号2033，门诊号778，病案号12号
第3组患者用药，实验组12人，对照2组
村医给开的镇静药和镇痛药，县级医院
市场上市面上的保健品，都市白领，城市居民
有什么区别，累及区域，三病区5床，疫区旅行史
山区孩子，社区医院，走进误区，街头小吃
头部外伤，里程碑，肠道2号引流管
心室3.5cm，左室舒张功能减退，教室和手术室和办公室
肌层3层，胃壁5层结构
我们小区5栋有人确诊
我们村3组有人得了乙肝
上海小巷里的大道理
香港脚擦什么药，德国小蠊，日本血吸虫，武汉株
北京烤鸭，山东大葱，杭州白菊，川贝，云南白药，西湖龙井
哈药集团三精制药，江苏恒瑞，北京同仁堂，上海信谊药厂
中东呼吸综合征，马尔堡病毒，登革热
链接地址见下面，IP地址192.168.1.1，官网地址，下载地址
住院3号楼5层
住院部2楼，住外科一病区3床
门诊楼3楼内科，检验科在2号楼1层
我住在农村，住在山区，住在学校宿舍
住在马路边，住在一个小镇上
住院12号出院，20号复查
2月10号去做的B超，9.19号仔细检查
家里5口人，家住楼房
他庄重地说，弄清楚了，栋梁
每组3次，每次5组，共2队
肾区叩痛，心前区不适，肝区疼3天
用了3号针头，6号半手套
血型O型，RH阴性，2号染色体
食道1号，气道5级，产道2次裂伤
知道一号病毒吗，味道3天没有了
经络通路一共12条，督脉一条
从市区到县城两小时，乡镇卫生院
县乡村三级预防网络
省市县各级医院，各县区街道
城乡居民医保，社区居民委员会通知
新区建设，开发区工厂噪音
高血压3级，分3组，第2组第5号
三号公路施工，地铁2号线
上市公司的药，超市买的
镇江香醋，庄河草莓
城镇职工，农村合作医疗
家住附近的小区
地址不详，住址保密，户籍已迁
100元一盒，301不锈钢，502胶水
早上7点20号才去，18楼
里里外外一条路，走这条路12号线
导管通路2号管，血流通路1号口
浙江省内各县乡镇卫生院
江苏省农村合作医疗，北京市城镇职工医保
上海人走路去上班，北京市道路拥堵
文山三七，长白山人参，山东东阿县阿胶
第3组淋巴结清扫，颈部VI区，肝段5号
西药房3号窗口，放射科1号机
快递到付，来自母体
鼓楼那边，和平年代，光明前途，长寿秘诀，武侯祠
心路历程，生路，陌路
建议住院，住了5天
道路千万条，安全第一条
维生素B12 500mg每日1次
Chapter 5 Clinical Way of Thinking
Take 20 Drops Daily at Room temperature
""")


def values(text: str) -> list[str]:
    return recognising.found(address, text)


@pytest.mark.parametrize("written", ADDRESSES)
def test_addresses_in_every_form(written: str) -> None:
    for text in (
        written,
        f"家住{written}，头疼三天",
        f"我叫张三，住{written}。",
        f"地址：{written}",
        f"（{written}）",
        f"我家住在{written}",
        f"患者，{written}；胃痛",
    ):
        assert values(text) == [written], text


@pytest.mark.parametrize("text", PLACES_ONLY)
def test_provinces_cities_and_districts_alone_stay(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_stays(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("家住朝阳区，胃痛", "朝阳区"),
        ("籍贯河南省太康县。", "河南省太康县"),
        ("户籍所在地：湖北省孝感市大悟县", "湖北省孝感市大悟县"),
        ("老家在太康县马厂镇", "太康县马厂镇"),
        ("现住望京街道", "望京街道"),
    ],
)
def test_a_county_or_district_goes_only_behind_a_word_for_living(text: str, found: str) -> None:
    assert values(text) == [found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("北京市朝阳区建国路88号，邮编100020。", "北京市朝阳区建国路88号，邮编100020"),
        ("北京市朝阳区建国路88号 100020", "北京市朝阳区建国路88号 100020"),
        ("北京市朝阳区建国路88号（邮编：100020）", "北京市朝阳区建国路88号（邮编：100020"),
        ("邮政编码：710054", "710054"),
        ("郵編710054", "710054"),
    ],
)
def test_postcodes(text: str, found: str) -> None:
    assert values(text) == [found]


@pytest.mark.parametrize(
    "written",
    [
        "123 Main Street, Springfield, IL 62704",
        "1600 Pennsylvania Avenue NW, Washington, DC 20500",
        "12 Oak St, Springfield, IL 62704-1234",
        "221 West 57th Street, Suite 1200, New York, NY 10019",
        "Room 502, No. 88 Jianguo Road, Chaoyang District, Beijing 100022",
    ],
)
def test_english_addresses(written: str) -> None:
    for text in (written, f"我住在{written}。", f"地址: {written}，请寄"):
        assert values(text) == [written]


ROADS = st.sampled_from(["中山路", "解放北路", "人民大道", "建设大街", "学院路", "青年街", "长江西路"])
ABOVE = st.sampled_from(
    ["", "北京市海淀区", "湖南省长沙市", "浙江杭州西湖区", "江苏省徐州市沛县", "广西南宁市", "重庆市"]
)
DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")
CHINESE = st.text("一二三四五六七八九十", min_size=1, max_size=3)
BELOW = st.sampled_from(["", "3号楼", "2单元", "5栋2单元301室", "A座1203", "12楼", "502室"])


@settings(max_examples=200)
@given(ABOVE, ROADS, st.one_of(st.integers(1, 9999).map(str), CHINESE), BELOW, st.booleans())
def test_every_number_on_every_road(above: str, road: str, number: str, below: str, wide: bool) -> None:
    written = f"{above}{road}{number}号{below}"
    written = written.translate(DIGITS) if wide else written
    assert values(f"我家在{written}，") == [written]


def test_addresses_planted_in_real_questions(shared_data: Path) -> None:
    rows = [json.loads(line) for line in (shared_data / "pii" / "positives.jsonl").read_text("utf-8").splitlines()]
    planted = [[each["text"] for each in row["spans"] if each["label"] == "ADDRESS"] for row in rows]
    assert sum(map(len, planted)) == 60
    assert [values(row["text"]) for row in rows] == planted


def test_medical_terms_and_real_questions_hold_no_address(shared_data: Path) -> None:
    terms = (shared_data / "synonyms" / "thuocl_medical_lexicon.tsv").read_text("utf-8").split()
    assert [term for term in terms if address(term)] == []
    queries = (shared_data / "zh_legacy" / "queries.jsonl").read_text("utf-8").splitlines()
    assert [query for query in queries if address(json.loads(query)["text"])] == []


def test_placeholders_and_gone_text_are_no_address() -> None:
    for text in ("家住[地址]，电话[电话]", "地址：[地址]3号楼", "■■■■路12号", "[医院]12号", "家住■■区"):
        assert values(text) == [], text
    assert values("北京市[地址]建国路88号") == ["建国路88号"]
